/**
 * What tests of an agent need: a provider that says what the test wrote.
 */
export * as ScriptedProvider from "./ScriptedProvider.ts"
export * as Step from "./Step.ts"
