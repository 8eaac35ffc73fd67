/**
 * Conversations that last longer than the process: the entries of sessions, and the stores that keep them.
 *
 * @since 0.2.0
 */
export * as JsonlSessionStore from "./JsonlSessionStore.ts"
export * as MemorySessionStore from "./MemorySessionStore.ts"
export * as SessionEntry from "./SessionEntry.ts"
export * as SessionHome from "./SessionHome.ts"
export * as SessionStorage from "./SessionStorage.ts"
export * as SessionStore from "./SessionStore.ts"
export * as SqlSessionStore from "./SqlSessionStore.ts"
