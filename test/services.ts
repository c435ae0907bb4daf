import { AsyncLocalStorage } from 'node:async_hooks'

/** What test files start: databases, edges, workers and processes of the service. A database must outlive what uses it. */

type Stop = () => Promise<unknown>

const ofFile: Stop[] = []
const ofProcess: Stop[] = []
const shared = new AsyncLocalStorage<true>()

/** Stops it when the file ends, or with the process if it is shared; the last one started is stopped first. */
export function stopAfterFile(stop: Stop): void {
  const stops = isShared() ? ofProcess : ofFile
  stops.push(stop)
}

/** True while something starts that the files of a process share. */
export const isShared = (): boolean => shared.getStore() ?? false

/** Starts something once for all files that this process runs: each call after the first returns the same. */
export function sharedByFiles<T>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined
  // node:test assigns what follows an await to the file that made the promise: each call returns a promise of its own.
  return () =>
    new Promise((resolve, reject) => {
      started ??= shared.run(true, start)
      started.then(resolve, reject)
    })
}

/** Stops what the file has started. */
export const endServices = (): Promise<void> => endAll(ofFile)

/** Stops what the files of this process have shared. */
export const endShared = (): Promise<void> => endAll(ofProcess)

async function endAll(stops: Stop[]): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
