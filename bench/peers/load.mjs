// One load generator for all of them: so many requests, so many at once, then one at a time.
// node load.mjs NAME ADDRESS RUNS PROCESS-ID... [--secret TEXT] [--key-header NAME]
import http from "node:http";
import fs from "node:fs";
import crypto from "node:crypto";

const [name, address, runs, ...rest] = process.argv.slice(2);
const option = (flag) => (rest.includes(flag) ? rest[rest.indexOf(flag) + 1] : undefined);
const secret = option("--secret");
const keyHeader = option("--key-header");
const pids = rest.filter((word) => /^\d+$/.test(word));
const url = new URL(address);
const began = Date.now().toString(36);

function once(agent, id) {
  const body = JSON.stringify({ id });
  const headers = { "content-type": "application/json", "content-length": body.length };
  if (keyHeader) headers[keyHeader] = id;
  if (secret) {
    const code = crypto.createHmac("sha256", secret).update(body).digest("hex");
    headers["x-github-delivery"] = id;
    headers["x-hub-signature-256"] = `sha256=${code}`;
  }
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: "POST", agent, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${name}: ${answer.statusCode}`))));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function round(label, count, atOnce) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: atOnce });
  const times = [];
  let next = 0;
  const start = process.hrtime.bigint();
  const lane = async () => {
    while (next < count) {
      const id = `${label}-${began}-${next++}`;
      const at = process.hrtime.bigint();
      await once(agent, id);
      times.push(Number(process.hrtime.bigint() - at) / 1e6);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  agent.destroy();
  times.sort((a, b) => a - b);
  return { rate: count / seconds, p50: times[times.length >> 1], p99: times[Math.floor(times.length * 0.99)] };
}

// Processor time of the processes that serve it, in milliseconds.
function cpu() {
  const ticks = (pid) => fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return pids.reduce((sum, pid) => sum + (Number(ticks(pid)[11]) + Number(ticks(pid)[12])) * 10, 0);
}

await round("warm", 128, 64);
const before = cpu();
const many = await round("many", Number(runs), 64);
const used = (cpu() - before) / Number(runs);
const one = await round("one", 200, 1);
const cell = (value, width) => value.toFixed(2).padStart(width);
console.log(
  `${name.padEnd(10)} ${many.rate.toFixed(0).padStart(12)} ${cell(many.p50, 10)} ${cell(many.p99, 10)} ${cell(one.p50, 14)} ${cell(used, 14)}`,
);
