// Required before a server over HTTP: it listens on a free port of this machine only, says which as {"url"}, and ends with its input.
"use strict";
const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...given) {
  const callback = given.filter((each) => typeof each === "function");
  this.once("listening", () => {
    process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${this.address().port}/mcp` }) + "\n");
  });
  return listen.call(this, { port: 0, host: "127.0.0.1" }, ...callback);
};
process.stdin.on("end", () => process.exit(0)).resume();
