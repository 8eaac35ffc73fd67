/**
 * A system that keeps its runs in a database, behind one interface for all of them.
 */

export interface Setup {
  /** The address of the model. */
  readonly baseURL: string
  /** The name of the model, which says what the model does. */
  readonly model: string
  /** The database, which is empty at first: `sqlite:FILE` or `postgres://…`. */
  readonly url: string
  /** A port that is free. */
  readonly port: number
  /** Whether a person is asked before each call of the tool. */
  readonly asks: boolean
}

export interface Durable {
  /** Does a run to its end. */
  readonly run: (id: string) => Promise<unknown>
  /** Starts a run, and resolves when it waits for a person. */
  readonly hold: (id: string) => Promise<unknown>
  /** Approves the call that a run waits for, and resolves at the end of the run. */
  readonly approve: (id: string) => Promise<unknown>
}

/** What an adapter exports. The tool of its agent, `tick`, takes `{ n }` and returns a text of 1,000 characters. */
export interface Adapter {
  readonly open: (setup: Setup) => Promise<Durable>
}
