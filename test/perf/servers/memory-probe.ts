/**
 * Lets a benchmark read the memory of a process after a garbage collection. It is loaded with `--expose-gc --import`. An
 * answer to the message `memory` has these fields, in bytes.
 */
export interface MemoryUse {
  readonly rss: number
  /** JavaScript objects and buffers. */
  readonly heap: number
}

process.on('message', (message) => {
  if (message !== 'memory') return
  const collect = globalThis.gc!
  collect()
  // Objects that wait for a finalizer need a second collection.
  setImmediate(() => {
    collect()
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send!({ rss, heap: heapUsed + external } satisfies MemoryUse)
  })
})
