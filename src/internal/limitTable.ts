/**
 * The limits of a run: one row for each member of `RunOptions.limits`, which the loop, the server, the program and the names of
 * `LimitExceeded` read. A member without a row does not compile.
 */
import * as Struct from "effect/Struct"
import type { Limits } from "../RunOptions.ts"

/** The rules for one member. */
export interface Row {
  /** The default of the limit. Absent: no bound. */
  readonly initial?: number
  /** The unit of the bound; absent for a member that bounds nothing. */
  readonly unit?: "turns" | "milliseconds" | "calls" | "bytes" | "tokens" | "currency" | "rounds" | "retries"
  /**
   * The rule for a value that a client of a server chooses: the smaller of the two numbers or durations counts, or the choice of the
   * client, or the value of the server alone.
   */
  readonly narrows: "smaller" | "shorter" | "client" | "server"
  /** The member of `Interrupted` from which a continued run counts on, or the part that it counts anew. Only for bounds that fail a run. */
  readonly counts?: "turns" | "countedMs" | "toolCalls" | "spent" | "calls" | "request"
  /** Its name in `LimitExceeded` of version 0.1.0, if that was another one. */
  readonly formerly?: string
}

export type Table = { readonly [name: string]: Row }

export const table = {
  maxTurns: { initial: 50, unit: "turns", narrows: "smaller", counts: "turns" },
  onMaxTurns: { narrows: "client" },
  wrapUpInstruction: { narrows: "server" },
  executionTime: { unit: "milliseconds", narrows: "shorter", counts: "countedMs" },
  maxToolCalls: { unit: "calls", narrows: "smaller", counts: "toolCalls", formerly: "toolCalls" },
  maxContextSize: { unit: "bytes", narrows: "smaller", counts: "request", formerly: "contextSize" },
  maxTotalTokens: { unit: "tokens", narrows: "smaller", counts: "spent", formerly: "tokens" },
  maxCost: { unit: "currency", narrows: "smaller", counts: "spent", formerly: "cost" },
  prices: { narrows: "server" },
  maxIdenticalToolCalls: {
    initial: 5,
    unit: "rounds",
    narrows: "smaller",
    counts: "calls",
    formerly: "identicalToolCalls"
  },
  maxToolRetries: { initial: 1, unit: "retries", narrows: "smaller" }
} as const satisfies { readonly [Name in keyof Limits]-?: Row }

type NameOf<Of extends Row> = {
  readonly [Name in keyof typeof table]: (typeof table)[Name] extends Of ? Name : never
}[keyof typeof table]

/** The name of a limit that fails a run. */
type Bound = NameOf<Row & { readonly counts: string }>

/** The name of a limit that had another one in version 0.1.0. */
type Renamed = NameOf<Row & { readonly formerly: string }>

const names = Struct.keys(table)
export const bounds = names.filter((name): name is Bound => "counts" in table[name])
export const renamed = names.filter((name): name is Renamed => "formerly" in table[name])
