/** What a test file has started and its database must outlive: edges and workers in the test's own process. */

const stops: (() => Promise<unknown>)[] = []

/** Stops it when the file ends, those that started last first, before any database is dropped. */
export function stopAfterFile(stop: () => Promise<unknown>): void {
  stops.push(stop)
}

/** Ends what the file has started. */
export async function endServices(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
