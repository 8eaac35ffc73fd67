/**
 * One measurement, in a process of its own: `measure.ts ADAPTER WORKLOAD ORIGIN SIZE…`. Tells its parent what came out.
 */
import * as Durable from "./durable/workloads.ts"
import { workloads } from "./workloads.ts"

const [path = "", name = "", origin = "", ...size] = process.argv.slice(2)

const measure = async () => {
  const workload = workloads[name] ?? Durable.workloads[name]
  if (workload === undefined) throw new Error(`no such workload: ${name}`)
  return { figures: await workload({ adapter: await import(path), origin }, size.map(Number)) }
}

const message = await measure().catch((error: unknown) => ({ trouble: String(error) }))
process.send?.(message, undefined, undefined, () => process.exit(0))
