// An identity provider for the tests: node provider.mjs NODE_MODULES. It prints its address, and knows everybody: the
// name of an account says its groups, as in `ana+staff+admins`.
import http from "node:http";

const { default: Provider } = await import(`${process.argv[2]}/oidc-provider/lib/index.js`);
const server = http.createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ client_id: "haft", client_secret: "the secret of haft", redirect_uris: ["http://127.0.0.1/"] }],
    claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email", "email_verified"] },
    cookies: { keys: ["a key of the tests"] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true } },
    async findAccount(_context, id) {
      const [name, ...groups] = id.split("+");
      const email = { email: `${name}@example.org`, email_verified: !groups.includes("unverified") };
      return { accountId: id, claims: () => ({ sub: id, preferred_username: name, groups, ...email }) };
    },
  });
  // The server of haft gets a port of its own for each test.
  provider.Client.prototype.redirectUriAllowed = (uri) => new URL(uri).pathname === "/sign-in/oidc/callback";
  server.on("request", provider.callback());
  console.log(issuer);
});
