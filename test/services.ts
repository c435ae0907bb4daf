import { AsyncLocalStorage } from 'node:async_hooks'

/** Resources that test files start: databases, edges, workers, processes. A database must outlive its users. */

type Stop = () => Promise<unknown>

const fileStops: Stop[] = []
const processStops: Stop[] = []
const shared = new AsyncLocalStorage<true>()

/** Registers a stop function for the end of the file, or of the process if the resource is shared. They run in reverse order. */
export function stopAfterFile(stop: Stop): void {
  const stops = isShared() ? processStops : fileStops
  stops.push(stop)
}

/** True while a resource starts that the files of a process share. */
export const isShared = (): boolean => shared.getStore() ?? false

/** Starts a resource once for all files of this process; later calls return the same one. */
export function sharedByFiles<T>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined
  // node:test assigns code after an await to the file that created the promise, so each call returns a new one.
  return () =>
    new Promise((resolve, reject) => {
      started ??= shared.run(true, start)
      started.then(resolve, reject)
    })
}

/** Stops the file's resources. */
export const endServices = (): Promise<void> => endAll(fileStops)

/** Stops the resources that the files of this process share. */
export const endShared = (): Promise<void> => endAll(processStops)

async function endAll(stops: Stop[]): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
