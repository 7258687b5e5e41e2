# A dev server that says something now and then, until it is stopped.
count=0
while :; do
    count=$((count + 1))
    echo "[$count] GET /cart 200 in 3 ms"
    sleep 0.2
done
