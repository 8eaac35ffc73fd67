/**
 * Numbers that look random and are the same for the same seed (mulberry32).
 */
export class Random {
  private state: number

  constructor(seed: number) {
    this.state = seed >>> 0
  }

  /** From 0, less than 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 to `most`. */
  upTo(most: number): number {
    return Math.floor(this.next() * (most + 1))
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.upTo(times - 1) === 0
  }

  /** One of several. */
  pick<A>(first: A, ...others: ReadonlyArray<A>): A {
    return [first, ...others][this.upTo(others.length)] ?? first
  }

  /** As many as `most`, each made anew. */
  some<A>(most: number, make: () => A): ReadonlyArray<A> {
    return Array.from({ length: this.upTo(most) }, make)
  }
}
