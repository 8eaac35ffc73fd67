/**
 * The failure of an MCP server.
 */
import * as Schema from "effect/Schema"
import { TaggedError } from "../../internal/errors.ts"

/**
 * An MCP server did not do what it was asked.
 *
 * **Details**
 *
 * `reason` is one of:
 *
 * - `"notInstalled"`: the package `@modelcontextprotocol/client` is not installed.
 * - `"unreachable"`: the server does not start, or does not answer at its address.
 * - `"unauthorized"`: the server wants credentials.
 * - `"lost"`: the connection ended in the middle of the request. The server may have done the work.
 * - `"timeout"`: the server took longer than the time limit.
 * - `"protocol"`: the server refused the request, or answered with something that is not valid.
 *
 * @category errors
 * @since 0.2.0
 */
export class McpError extends TaggedError<McpError>()("McpError", {
  /** The name of the server. */
  server: Schema.String,
  /** The kind of failure. */
  reason: Schema.Literals(["notInstalled", "unreachable", "unauthorized", "lost", "timeout", "protocol"]),
  /** The failure in words. */
  detail: Schema.String,
  /** `true` if the server did not get the request, so that it can be sent again. Absent where it may have. */
  notSent: Schema.optionalKey(Schema.Literal(true)),
  /** The last lines that a server of this machine wrote to stderr; absent if it wrote none. The model does not read them. */
  stderr: Schema.optionalKey(Schema.String)
}) {
  override get message(): string {
    return `The MCP server ${this.server} ${failed[this.reason]}: ${this.detail}`
  }
}

const failed: Readonly<Record<McpError["reason"], string>> = {
  notInstalled: "cannot be used",
  unreachable: "is not connected",
  unauthorized: "wants credentials",
  lost: "ended its connection",
  timeout: "took too long",
  protocol: "refused the request"
}
