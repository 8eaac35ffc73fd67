/**
 * The bars of the interactive program, and its figures beside them as Markdown.
 */
import { Effect } from "effect"
import { loadavg } from "node:os"
import { median } from "../table.ts"
import type { Figures } from "../workloads.ts"
import * as Home from "./Home.ts"
import * as Measured from "./figures.ts"

interface Bar {
  readonly figure: string
  readonly label: string
  readonly unit: string
  /** The most that it may be, `undefined` for a figure that explains another one. */
  readonly most?: number
  readonly digits?: number
}

export const bars: ReadonlyArray<Bar> = [
  { figure: "paint", label: "first paint", unit: "ms", most: 300 },
  { figure: "paintCpu", label: "CPU until first paint", unit: "ms" },
  {
    figure: "probed",
    label: "first paint with sandbox and local servers looked for, no key",
    unit: "ms",
    most: 300
  },
  { figure: "probedCpu", label: "CPU until then", unit: "ms" },
  { figure: "stream", label: "CPU a second while 50 deltas/s stream", unit: "ms", most: 30, digits: 1 },
  { figure: "frames", label: "frames a second meanwhile", unit: "", most: 30.5, digits: 1 },
  { figure: "echo", label: "from a typed character to the screen meanwhile, p50", unit: "ms", most: 50 },
  { figure: "echoMax", label: "the same, the longest", unit: "ms" },
  { figure: "bytes", label: "bytes written, of those of the changed lines", unit: "×", most: 2, digits: 2 },
  { figure: "idle", label: "CPU an idle second", unit: "ms", most: 1, digits: 2 },
  { figure: "output", label: "memory held more, over 10 MB of tool output", unit: "MB", most: 20, digits: 1 },
  { figure: "outputResident", label: "memory of the process more, over the same", unit: "MB", digits: 1 },
  { figure: "turns", label: "memory held more, over 500 turns", unit: "MB", most: 20, digits: 1 },
  { figure: "turnsResident", label: "memory of the process more, over the same", unit: "MB", digits: 1 },
  { figure: "open", label: "a session of 500 turns opens", unit: "ms", most: 1000 },
  { figure: "openCpu", label: "CPU of that", unit: "ms" },
  { figure: "texts", label: "hostile texts", unit: "" },
  { figure: "foreign", label: "foreign sequences of them", unit: "", most: 0 }
]

export interface Sizes {
  readonly seconds: number
  readonly megabytes: number
  readonly turns: number
  readonly texts: number
}

export const whole: Sizes = { seconds: 10, megabytes: 10, turns: 500, texts: 10_000 }
export const quick: Sizes = { seconds: 3, megabytes: 2, turns: 40, texts: 600 }

const looking = { EFFECT_AGENT_MODEL: "", OPENAI_API_KEY: "" }

/** The measurements by name, each of figures of its own. */
export const jobs = (entry: string, { megabytes, seconds, texts, turns }: Sizes) => ({
  paint: Measured.firstPaint(entry, Home.unprobed),
  probed: Effect.map(Measured.firstPaint(entry, looking), ({ paint = NaN, paintCpu = NaN }) => ({
    probed: paint,
    probedCpu: paintCpu
  })),
  stream: Measured.streaming(entry, seconds),
  idle: Measured.idle(entry, seconds),
  output: Measured.output(entry, megabytes),
  turns: Measured.turns(entry, turns),
  hostile: Measured.hostile(entry, texts, 90)
})

type Job = keyof ReturnType<typeof jobs>

/** How often each is measured. */
const rounds: Readonly<Record<Job, number>> = {
  paint: 9,
  probed: 9,
  stream: 3,
  idle: 3,
  output: 3,
  turns: 3,
  hostile: 1
}

/** A load at which figures of time say something about the program. */
const quietLoad = 1.5

const number = (value: number, digits = 0): string =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })

/** Measures everything, or the jobs of a list, and prints a line for each figure. */
export const print = Effect.fnUntraced(function* (
  entry: string,
  options: {
    readonly only: ReadonlyArray<string> | undefined
    readonly rounds: number | undefined
    readonly isQuick: boolean
  }
) {
  console.log(`| figure | bar | median | least – most | load |\n| --- | ---: | ---: | ---: | ---: |`)
  const all = Object.entries(jobs(entry, options.isQuick ? quick : whole))
  for (const [name, job] of all) {
    if (options.only?.includes(name) === false) continue
    const measured: Array<Figures> = []
    const times = options.rounds ?? (options.isQuick ? 1 : (rounds[name as Job] ?? 1))
    for (let round = 0; round < times; round++) measured.push(yield* job)
    const [load = 0] = loadavg()
    for (const { digits, figure, label, most, unit } of bars) {
      const values = measured.flatMap((figures) => figures[figure] ?? [])
      if (values.length === 0) continue
      const value = median(values)
      const bar = most === undefined ? "" : `≤ ${number(most)} ${unit}`
      const mark = most === undefined || value <= most ? "" : " **missed**"
      const range = `${number(Math.min(...values), digits)} – ${number(Math.max(...values), digits)}`
      const busy = load < quietLoad ? "" : " (busy)"
      console.log(
        `| ${label} | ${bar} | ${number(value, digits)} ${unit}${mark} | ${range} | ${load.toFixed(1)}${busy} |`
      )
    }
  }
})
