/**
 * What is measured: one run of an agent, behind one interface for every library.
 */

/** A tool, in a form every library can take. */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly jsonSchema: object
  /** The types of its params by name, for libraries that want a schema of their own. */
  readonly props: Readonly<Record<string, "integer" | "string">>
  readonly execute: (args: Readonly<Record<string, unknown>>) => Promise<string>
}

export interface Run {
  readonly baseURL: string
  readonly model: string
  readonly system: string
  readonly prompt: string
  readonly tools?: ReadonlyArray<Tool>
  readonly maxTurns: number
  /** Hears every delta of text. */
  readonly onText: (text: string) => void
  /** Ends the run when it is given. */
  readonly signal?: AbortSignal
}

/** What a file in `adapters/` exports. One serves all workloads, so that it cannot be tuned for one. */
export interface Adapter {
  readonly meta: { readonly name: string }
  readonly run: (run: Run) => Promise<unknown>
}
