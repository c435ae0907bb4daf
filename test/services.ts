/** What a test file has started: databases, and edges and workers in the test's own process, which their database must outlive. */

const stops: (() => Promise<unknown>)[] = []

/** Stops it when the file ends, those that started last first: a database goes after what uses it. */
export function stopAfterFile(stop: () => Promise<unknown>): void {
  stops.push(stop)
}

/** Ends what the file has started. */
export async function endServices(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop()
}
