/**
 * The CPU and the memory of another process, on Linux.
 */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** CPU of all threads of a process in milliseconds, to the nanosecond. */
export const cpu = (pid: number): number => {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).reduce((sum, task) => {
    const [ns = "0"] = readFileSync(join(tasks, task, "schedstat"), "utf8").split(" ")
    return sum + Number(ns) / 1e6
  }, 0)
}

/** What a process holds, in megabytes. */
export interface Memory {
  /** The heap and buffers after a collection. */
  readonly held: number
  /** Memory of the process. */
  readonly resident: number
}

/** Has a process collect its garbage and tell its memory at SIGUSR2, by variables for Node. */
export const probe = (folder: string) => {
  const module = join(folder, "probe.mjs")
  const file = join(folder, "memory.json")
  writeFileSync(
    module,
    `import { renameSync, writeFileSync } from "node:fs"
process.on("SIGUSR2", () => {
  for (let n = 0; n < 4; n++) globalThis.gc()
  writeFileSync(${JSON.stringify(`${file}.new`)}, JSON.stringify(process.memoryUsage()))
  renameSync(${JSON.stringify(`${file}.new`)}, ${JSON.stringify(file)})
})`
  )
  return {
    env: { NODE_OPTIONS: `--expose-gc --import=${module}` },
    memory: async (pid: number): Promise<Memory> => {
      rmSync(file, { force: true })
      process.kill(pid, "SIGUSR2")
      while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20))
      const { external, heapUsed, rss } = JSON.parse(readFileSync(file, "utf8"))
      return { held: (heapUsed + external) / 2 ** 20, resident: rss / 2 ** 20 }
    }
  }
}
