import * as Replacement from "./src/tools/Replacement.ts"
import { Effect } from "effect"
const cpu = () => { const { system, user } = process.threadCpuUsage(); return (system + user) / 1000 }
const crlf = "a\r\n".repeat(3_000_000), xs = "x ".repeat(4_500_000), words = "lorem ipsum dolor sit ".repeat(430000)
const t0 = cpu()
console.log("flat", /z/.test(crlf), /z/.test(xs), /z/.test(words), cpu()-t0)
for (const [n, text] of Object.entries({crlf, xs, words})) {
  let longest = 0, last = cpu(), stack = ""
  const orig = performance.now.bind(performance)
  // every loop check calls performance.now: measure between
  performance.now = () => { const c = cpu(); if (c - last > 60) console.log(n, Math.round(c - last), new Error().stack.split("\n").slice(2,4).join("|").slice(0,150)); last = cpu(); return orig() }
  await Effect.runPromise(Effect.exit(Replacement.apply(text, [{ oldText: "not there at all", newText: "z" }])))
  performance.now = orig
}
// step timing
