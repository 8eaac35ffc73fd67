/**
 * The tools of other programs and servers as tools of an agent, by the Model Context Protocol.
 *
 * @since 0.2.0
 */
export * as McpClient from "./McpClient.ts"
export * as McpTools from "./McpTools.ts"
