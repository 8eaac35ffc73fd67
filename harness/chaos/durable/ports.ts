/** Ports below those that the system gives to outgoing connections, other ones in each process that plays. */
let next = (process.pid * 37) % 18_000

export const port = (): number => 12_000 + (next++ % 18_000)
