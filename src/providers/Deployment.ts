/**
 * Where requests go: the addresses of a server, its `Auth`, and how it differs from others that speak its protocol.
 *
 * @since 0.2.0
 */
import type * as Redacted from "effect/Redacted"
import type { Auth } from "./Auth.ts"
import type { HostedToolDefinition } from "../RunOptions.ts"
import type { Rule, Thinking, Vendor } from "./internal/models/rule.ts"

/**
 * The kind of a tool that a vendor runs.
 *
 * @since 0.2.0
 * @category models
 */
export type HostedTool = HostedToolDefinition["type"]

/**
 * An option of web searches that a vendor runs.
 *
 * @since 0.2.0
 * @category models
 */
export type SearchMember = "maxUses" | "allowedDomains" | "blockedDomains" | "location"

/**
 * The models of a server, as far as the rules of `Models` depend on them.
 *
 * @since 0.2.0
 * @category models
 */
export interface Serves {
  /** The vendor whose rules of `Models` apply, or that of each model (default: none, so that no rule of the table applies). */
  readonly vendor?: Vendor | undefined
  /**
   * Returns the rule of a model, `undefined` if there is none (default: that of `vendor` in the table of `Models`, which `Transport.make` loads).
   *
   * The rules of `Models.layer` win over it.
   */
  readonly rules?: ((model: string) => Rule | undefined) | undefined
  /**
   * Whether the server is a gateway to other vendors, so that only limits and inputs of the model's family apply (default:
   * `false`).
   */
  readonly isGateway?: boolean | undefined
  /** How a model without a rule takes a thinking level (default: it takes none). */
  readonly thinking?: Thinking | undefined
  /** Whether the server takes a cache retention (default: `false`). */
  readonly keepsPrompts?: boolean | undefined
  /** The tools that the server runs, besides those of its protocol, such as `"webSearch"` (default: none). */
  readonly hostedTools?: ReadonlyArray<HostedTool> | undefined
  /** The tools of its protocol that the server does not run, such as `"fileSearch"` (default: none). */
  readonly withoutHostedTools?: ReadonlyArray<HostedTool> | undefined
  /** The members of web searches that the server does not take, besides those of its protocol (default: none). */
  readonly searchLacks?: ReadonlyArray<SearchMember> | undefined
  /** Whether the server takes no strict tools, although its protocol has them (default: `false`). */
  readonly withoutStrictTools?: boolean | undefined
  /** Whether the server takes neither `temperature` nor `topP` of any model (default: `false`). */
  readonly withoutSampling?: boolean | undefined
  /** Whether the server lets models search for tools that a request defers, as its vendor does (default: `false`). */
  readonly toolSearch?: boolean | undefined
  /** Whether the server takes changes of a prompt within a conversation, as its vendor does (default: `false`). */
  readonly promptChanges?: boolean | undefined
  /** Whether models without a rule answer by an output schema (default: `false`). */
  readonly takesSchema?: boolean | undefined
}

/**
 * A server that speaks a protocol.
 *
 * **Example** (Describing a server)
 *
 * ```ts
 * import { Auth, type Deployment } from "effect-agent/providers"
 *
 * const acme: Deployment.Deployment = {
 *   url: (model) => `https://api.acme.example/v1/${model}/chat`,
 *   auth: Auth.header("x-acme-key"),
 *   headers: { "x-acme-version": "2026-11-01" }
 * }
 *
 * console.log(acme.url("small")) // => https://api.acme.example/v1/small/chat
 * ```
 *
 * @since 0.2.0
 * @category models
 */
export interface Deployment {
  /** Returns the address of requests for a model. */
  readonly url: (model: string) => string
  /** Returns the address that counts the tokens of a request for a model (default: the server has none). */
  readonly countingUrl?: ((model: string) => string) | undefined
  /** Makes the credentials of each request. */
  readonly auth: Auth
  /** The key if `Credentials` has none for the provider (default: none). */
  readonly apiKey?: Redacted.Redacted | undefined
  /** The headers of each request (default: none). */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The models of the server (default: no rule of `Models` applies). */
  readonly serves?: Serves | undefined
  /** A sentence that errors add if the server does not know the route (default: none). */
  readonly otherwise?: string | undefined
}
