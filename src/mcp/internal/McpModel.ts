/** The servers, options, states and failures of MCP clients. */
import type * as Official from "@modelcontextprotocol/client"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import type * as AgentEvent from "../../AgentEvent.ts"
import * as Message from "../../Message.ts"
import * as Tool from "../../Tool.ts"
import * as Output from "../../internal/toolOutput.ts"
import { TaggedError } from "../../internal/errors.ts"

/**
 * A server that is a program of this machine, which talks over stdin and stdout.
 *
 * @category models
 * @since 0.2.0
 */
export interface StdioServer {
  /** The program. */
  readonly command: string
  /** The arguments of the program. Default: none. */
  readonly args?: ReadonlyArray<string>
  /** Variables of the program, beside HOME, LOGNAME, PATH, SHELL, TERM and USER of this process. Default: none. */
  readonly env?: Readonly<Record<string, string>>
  /** The folder of the program. Default: that of this process. */
  readonly cwd?: string
}

/**
 * A server at an address, by streamable HTTP.
 *
 * @category models
 * @since 0.2.0
 */
export interface HttpServer {
  /** The address, such as `"https://example.com/mcp"`. */
  readonly url: string
  /** Headers of each request, such as `Authorization`. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** Credentials by OAuth. Default: none. */
  readonly oauth?: OAuth
}

/**
 * A server behind a transport of the application, such as one in the same process.
 *
 * @category models
 * @since 0.2.0
 */
export interface CustomServer {
  /** Makes the transport of a connection, as the official client describes it. It has not started. */
  readonly transport: () => Official.Transport
}

/**
 * Credentials by OAuth.
 *
 * @category models
 * @since 0.2.0
 */
export interface OAuth {
  /**
   * The provider, as the official client describes it: one that keeps tokens and sends the person to the page of the server, or one that only
   * gives tokens.
   */
  readonly provider: Official.OAuthClientProvider | Official.AuthProvider
  /** Waits for the code of the redirect. Default: a server that wants a person fails with reason `"unauthorized"`. */
  readonly code?: Effect.Effect<string, McpError>
}

/**
 * A server.
 *
 * @category models
 * @since 0.2.0
 */
export type Server = StdioServer | HttpServer | CustomServer

/**
 * The model that servers may ask.
 *
 * @category models
 * @since 0.2.0
 */
export interface Sampling {
  /** The id of the model. */
  readonly model: string
  /** Most tokens of an answer. Default: what the server requests. */
  readonly maxTokens?: number
}

/**
 * The options of a connection.
 *
 * @category options
 * @since 0.2.0
 */
export interface Options {
  /** Whether `connect` fails where the first attempt does. If not, it succeeds, and goes on to connect. Default `true`. */
  readonly required?: boolean
  /** Longest time of an attempt to connect, and of a list. Default 30 seconds. */
  readonly connectTimeout?: Duration.Input
  /** The pauses between attempts to connect. Default: from 200 milliseconds, doubled up to 5 seconds. */
  readonly reconnect?: Schedule.Schedule<unknown>
  /** Whether a server may ask the person of the run in the middle of a call. Default `true`. */
  readonly elicitation?: boolean
  /** The model that the server may ask, at the cost of the run. Default: none. */
  readonly sampling?: Sampling
  /** The name and version of the client. Default: those of effect-agent. */
  readonly clientInfo?: { readonly name: string; readonly version: string }
}

/**
 * A tool of a server, as the server describes it.
 *
 * @category models
 * @since 0.2.0
 */
export type ServerTool = Official.Tool

/**
 * The state of a connection.
 *
 * @category models
 * @since 0.2.0
 */
export interface State {
  /** Whether requests reach the server. */
  readonly isConnected: boolean
  /** The last failure to connect, or the loss of the last connection; `undefined` while the server is connected. */
  readonly error: McpError | undefined
  /** The tools, as the server listed them last. They stay while the server is away. */
  readonly tools: ReadonlyArray<ServerTool>
  /** A line on each tool of the list that no model can be given, for `McpTools.join` to report. Default: none. */
  readonly leftOut?: ReadonlyArray<string>
  /** The advice of the server on its use; `undefined` if it gives none. */
  readonly instructions: string | undefined
  /** Whether the server has resources. */
  readonly hasResources: boolean
}

/**
 * A connection to a server.
 *
 * @category models
 * @since 0.2.0
 */
export interface McpClient {
  /** The name of the server. */
  readonly name: string
  /** The state now. */
  readonly state: Effect.Effect<State>
  /** The state now, and each later one. */
  readonly states: Stream.Stream<State>
  /**
   * Calls a tool of the server by the name that the server knows. Interruption cancels the call at the server. `timeout` is the longest time
   * without an answer or progress, default 1 minute: it does not count while the server waits for a person or the model.
   */
  readonly callTool: (
    tool: string,
    params: Schema.Json,
    options?: { readonly timeout?: Duration.Input }
  ) => Effect.Effect<Tool.ToolOutput, McpError, Tool.ToolContext>
  /** The resources of the server. */
  readonly resources: Effect.Effect<ReadonlyArray<Official.Resource>, McpError>
  /** The templates of addresses of resources. */
  readonly resourceTemplates: Effect.Effect<ReadonlyArray<Official.ResourceTemplateType>, McpError>
  /** Reads a resource. */
  readonly readResource: (uri: string) => Effect.Effect<AgentEvent.ToolOutput["content"], McpError>
  /** The prompts of the server. */
  readonly prompts: Effect.Effect<ReadonlyArray<Official.Prompt>, McpError>
  /** The messages of a prompt, with its arguments filled in. */
  readonly prompt: (
    name: string,
    args?: Readonly<Record<string, string>>
  ) => Effect.Effect<ReadonlyArray<Official.PromptMessage>, McpError>
}

// ───────────────────────── Content

type Block = Message.Text | Message.Image

/** The result of a call: its blocks, and its structured content as `details`. */
export const outputOf = (result: Official.CallToolResult): Tool.ToolOutput => {
  const { content, isError, structuredContent } = result
  const blocks = content.map(blockOf)
  const details = isJson(structuredContent) ? structuredContent : undefined
  const shown =
    blocks.length === 0 && details !== undefined ? [Message.text(JSON.stringify(details))] : blocks
  return Tool.output(shown, {
    ...(details === undefined ? {} : { details }),
    ...(isError === true ? { isError } : {})
  })
}

export const isJson = Schema.is(Schema.Json)

const blockOf = (block: Official.ContentBlock): Block =>
  Output.blockOf(block) ?? Message.text(JSON.stringify(block))

/** A resource: text and images as they are, other bytes by their size. */
export const resourceOf = (resource: Official.TextResourceContents | Official.BlobResourceContents): Block =>
  Output.resourceOf(resource) ?? Message.text(JSON.stringify(resource))

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
