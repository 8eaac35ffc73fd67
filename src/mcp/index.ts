/**
 * MCP: the tools of other programs and servers as tools of an agent, and an agent with its tools as a server.
 *
 * @since 0.2.0
 */
export * as McpClient from "./McpClient.ts"
export * as McpTools from "./McpTools.ts"
