/**
 * Runs that belong to the process, and not to the caller that starts them: sessions, the runs in them, and their events.
 *
 * @since 0.2.0
 */
export * as Agents from "./Agents.ts"
export * as JsonlRunLogStore from "./JsonlRunLogStore.ts"
export * as LiveRuns from "./LiveRuns.ts"
export * as RunLogStore from "./RunLogStore.ts"
export * as Runs from "./Runs.ts"
export * as SqlRunLogStore from "./SqlRunLogStore.ts"
