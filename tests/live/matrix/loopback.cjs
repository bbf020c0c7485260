// Loaded into an agent's server that would listen on every address, and asks nobody who they are.
const { Server } = require("node:net");

const listen = Server.prototype.listen;

Server.prototype.listen = function (...args) {
  const [where] = args;
  if (typeof where === "object" && where !== null && "port" in where) {
    return listen.call(this, { ...where, host: "127.0.0.1" }, ...args.slice(1));
  }
  const rest = args.slice(1).filter((arg) => typeof arg !== "string");
  return listen.call(this, where, "127.0.0.1", ...rest);
};
