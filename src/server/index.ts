/**
 * A server of agents over HTTP: sessions, runs that belong to the server, and their events.
 *
 * @since 0.2.0
 */
export * as Agents from "./Agents.ts"
export * as LiveRuns from "./LiveRuns.ts"
export * as RunLogStore from "./RunLogStore.ts"
export * as Runs from "./Runs.ts"
