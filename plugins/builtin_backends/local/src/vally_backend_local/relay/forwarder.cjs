// The same as forwarder.py for images that have Node and no Python: DIRECTORY PORT=NAME...
"use strict";
const net = require("node:net");

function forward(client, name) {
  const there = net.connect({ path: name, allowHalfOpen: true });
  const end = () => {
    client.destroy();
    there.destroy();
  };
  client.on("error", end);
  there.on("error", end);
  client.setNoDelay(true);
  client.pipe(there);
  there.pipe(client);
}

const [directory, ...forwards] = process.argv.slice(1).filter((word) => word !== __filename);
process.chdir(directory);
let waiting = forwards.length;
for (const [port, name] of forwards.map((word) => word.split("="))) {
  net
    .createServer({ allowHalfOpen: true }, (client) => forward(client, name))
    .listen(Number(port), "127.0.0.1", () => --waiting || process.stdout.write("ready\n"));
}
