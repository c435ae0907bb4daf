import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Stops the resources that test files start: databases, edges, workers, processes. Resources that use a database stop
 * before the database.
 */

type Stop = () => Promise<unknown>

const fileStops: Stop[] = []
const processStops: Stop[] = []
const sharedStart = new AsyncLocalStorage<true>()
/** Number of times that the shared resources have been stopped. */
let sharedStops = 0

/**
 * Registers a function that stops a resource at the end of the file, or of the process if the resource is shared. Stop
 * functions run in reverse order.
 */
export function stopAfterFile(stop: Stop): void {
  const stops = isShared() ? processStops : fileStops
  stops.push(stop)
}

/** True during the start of a resource that several files share. */
export const isShared = (): boolean => sharedStart.getStore() ?? false

/**
 * Returns a function that starts a resource at its first call. Later calls, also from other files of this process,
 * return the same resource until {@link stopSharedServices}.
 */
export function shareByFiles<T>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined
  let stops = 0
  // node:test assigns code after an await to the file that created the promise, so each call creates a new promise.
  return () =>
    new Promise((resolve, reject) => {
      if (started === undefined || stops !== sharedStops) started = sharedStart.run(true, start)
      stops = sharedStops
      started.then(resolve, reject)
    })
}

/** Stops the file's resources. */
export const stopFileServices = (): Promise<void> => stopAll(fileStops)

/**
 * Stops the resources that the files of this process share. Later files start new ones. A file that mocks `setTimeout` calls
 * this first: a shared edge that waits for a moment would get a mocked timer, and wait forever.
 */
export function stopSharedServices(): Promise<void> {
  sharedStops++
  return stopAll(processStops)
}

async function stopAll(stops: Stop[]): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
