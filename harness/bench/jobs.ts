/**
 * The workloads in their sizes, and what of their figures is shown.
 */

export interface Column {
  readonly figure: string
  readonly label: string
  readonly digits?: number
  /** Shown as a multiple of raw fetch too. */
  readonly ratio?: true
}

export interface Job {
  readonly id: string
  readonly title: string
  readonly workload: string
  /** Measured one after the other; each is a column of its own for every figure. */
  readonly sizes: ReadonlyArray<{ readonly label?: string; readonly size: ReadonlyArray<number> }>
  readonly columns: ReadonlyArray<Column>
  readonly rounds: number
  /** Peers are left out: it would take them minutes. */
  readonly onlyOurs?: true
}

const cpuPer = (what: string, digits = 2): Column => ({
  figure: "cpu",
  label: `CPU ${what}`,
  digits,
  ratio: true
})

const partOf =
  (part: number) =>
  (count: number): number =>
    Math.max(1, Math.round(count * part))

/** All of them; `part` is how much of each, for a quick look. */
export const jobs = (part: number): ReadonlyArray<Job> => {
  const some = partOf(part)
  const sizes = (counts: ReadonlyArray<number>, unit: string) =>
    counts.map((count) => ({
      label: `${some(count).toLocaleString("en")} ${unit}`,
      size: [some(count), 1]
    }))
  return [
    {
      id: "W1",
      title: `One answer of ${some(50_000).toLocaleString("en")} deltas, one event in an HTTP chunk`,
      workload: "stream",
      sizes: [{ size: [some(50_000), 1] }],
      columns: [
        cpuPer("µs/delta"),
        { figure: "speed", label: "deltas/s" },
        { figure: "memory", label: "RSS MB" }
      ],
      rounds: 5
    },
    {
      id: "W1c",
      title: "The same, 64 events in an HTTP chunk",
      workload: "stream",
      sizes: [{ size: [some(50_000), 64] }],
      columns: [cpuPer("µs/delta"), { figure: "speed", label: "deltas/s" }],
      rounds: 5
    },
    {
      id: "growth",
      title: "Growth of an answer: CPU µs/delta",
      workload: "stream",
      sizes: sizes([5_000, 50_000, 500_000], "deltas"),
      columns: [cpuPer("µs")],
      rounds: 1,
      onlyOurs: true
    },
    {
      id: "W2",
      title: "Turns with one small tool: CPU ms/turn",
      workload: "turns",
      sizes: sizes([50, 200, 400], "turns"),
      columns: [cpuPer("ms")],
      rounds: 3
    },
    {
      id: "W2b",
      title: "One call with 1 MB of arguments in 20,000 pieces",
      workload: "longArguments",
      sizes: [{ size: [some(1_048_576), some(20_000)] }],
      columns: [cpuPer("ms", 0), { figure: "wall", label: "wall ms" }],
      rounds: 3
    },
    {
      id: "W3",
      title: `${some(1000).toLocaleString("en")} agents at once, 3 answers each, 50 ms before each`,
      workload: "crowd",
      sizes: [{ size: [some(1000), 50] }],
      columns: [
        cpuPer("ms/agent"),
        { figure: "memory", label: "RSS kB/agent", ratio: true },
        { figure: "wall", label: "wall ms" }
      ],
      rounds: 3
    },
    {
      id: "W4",
      title: "From the server's write to the consumer, a delta every 5 ms",
      workload: "latency",
      sizes: [{ size: [some(400), 5] }],
      columns: [
        { figure: "p50", label: "p50 µs", ratio: true },
        { figure: "p99", label: "p99 µs" }
      ],
      rounds: 3
    },
    {
      id: "W6",
      title: "100 calls in one answer, each of 20 ms",
      workload: "together",
      sizes: [{ size: [some(100)] }],
      columns: [{ figure: "wall", label: "wall ms", ratio: true }, cpuPer("ms", 0)],
      rounds: 3
    },
    {
      id: "W7",
      title: `${some(1000).toLocaleString("en")} runs aborted while the model speaks`,
      workload: "aborts",
      sizes: [{ size: [some(1000)] }],
      columns: [
        { figure: "p50", label: "socket closed, p50 µs", ratio: true },
        { figure: "open", label: "left open" },
        { figure: "listeners", label: "listeners left/run", digits: 2 },
        { figure: "heap", label: "heap kB left/run", digits: 2 }
      ],
      rounds: 1
    }
  ]
}

/** Those of runs that a database keeps: 5 steps a run, which are 3 model calls and 2 tool calls. */
export const durable = (part: number): ReadonlyArray<Job> => {
  const some = partOf(part)
  return [
    {
      id: "D1",
      title: "Runs in a database, of 3 model calls and 2 tool calls",
      workload: "rate",
      sizes: [
        { label: "1 at a time", size: [1, some(60), some(100)] },
        { label: "50 at a time", size: [some(50), some(250), some(400)] }
      ],
      columns: [
        { figure: "statements", label: "statements", digits: 1 },
        { figure: "written", label: "kB written" },
        cpuPer("ms/run", 1),
        { figure: "speed", label: "runs/s" }
      ],
      rounds: 3
    },
    {
      id: "D2",
      title: `${some(300)} runs that wait for a person`,
      workload: "waiting",
      sizes: [{ size: [some(300), some(3000)] }],
      columns: [
        { figure: "heap", label: "heap kB/run" },
        { figure: "idle", label: "idle CPU ms/s", digits: 1 },
        { figure: "answer", label: "answer ms" },
        { figure: "start", label: "CPU ms of the next process" },
        { figure: "again", label: "answer ms there" }
      ],
      rounds: 1
    },
    {
      id: "D3",
      title: "The cost of a turn in a long run: CPU ms/turn",
      workload: "growth",
      sizes: [20, 100, 400].map((turns) => ({
        label: `${some(turns)} turns`,
        size: [some(turns), some(400)]
      })),
      columns: [cpuPer("ms")],
      rounds: 1
    }
  ]
}
