/* A program without a C library of its own to load, and with its own resolver: as Go programs are. It asks 8.8.8.8 for
   the address of a host, fetches / from port 80, and prints the answer. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int main(int count, char **words) {
    unsigned char query[512] = {0x12, 0x34, 1, 0, 0, 1}, answer[512];
    char request[512];
    const char *label = words[1];
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct timeval wait = {5, 0};
    size_t at = 12;
    ssize_t size;
    int end;
    if (count != 2 || strlen(label) > 200) return 2;
    while (*label) {
        size_t length = strcspn(label, ".");
        query[at++] = (unsigned char)length;
        memcpy(query + at, label, length);
        at += length;
        label += length + (label[length] == '.');
    }
    at++;
    query[at + 1] = query[at + 3] = 1;
    at += 4;
    inet_pton(AF_INET, "8.8.8.8", &server.sin_addr);
    end = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    sendto(end, query, at, 0, (struct sockaddr *)&server, sizeof server);
    size = recv(end, answer, sizeof answer, 0);
    if (size < 16) { fprintf(stderr, "no answer\n"); return 3; }
    memcpy(&server.sin_addr, answer + size - 4, 4);
    server.sin_port = htons(80);
    end = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(end, (struct sockaddr *)&server, sizeof server)) { perror("connect"); return 4; }
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", words[1]);
    if (write(end, request, strlen(request)) < 0) return 5;
    while ((size = read(end, answer, sizeof answer)) > 0) fwrite(answer, 1, (size_t)size, stdout);
    return 0;
}
