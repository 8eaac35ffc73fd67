/** A server to whose API and models a provider adapts requests. */
import type { Serves } from "../Deployment.ts"
import type { Protocol } from "../Protocol.ts"
import type { Rule } from "./models/rule.ts"

export interface Server {
  readonly protocol: Protocol
  readonly serves: Serves
  /** Returns the rule of a model. */
  readonly find: (model: string) => Rule | undefined
}
