import { writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { spec } from 'node:test/reporters'

/** A test that failed, in the test file that holds it. */
export interface Failed {
  /** The suite at the top: a test file, or a process of node:test that died. */
  readonly file: string
  readonly name: string
}

/**
 * `spec`, and an exit code that every failure sets: by itself Node 22 exits with 0 when nothing failed but a suite without its
 * tests, such as a file that ends while it is loaded, or whose `after` throws (nodejs/node#58687). Writes what failed, as a
 * list of `Failed`, into the file that `TEST_FAILURES` names.
 */
export default (events: AsyncIterable<TestEvent>): AsyncIterable<Buffer> =>
  Readable.from(collectFailures(events)).compose(spec())

async function* collectFailures(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const failed: Failed[] = []
  let names: string[] = []
  for await (const event of events) {
    if (event.type === 'test:fail') {
      process.exitCode = 1
      const { name, nesting, details } = event.data
      // A suite fails with its tests, after them; a file's is the last.
      if (causeOf(details.error) !== 'subtestsFailed') names.push(name)
      if (nesting === 0) {
        failed.push(...names.map((one) => ({ file: name, name: one })))
        names = []
      }
    }
    yield event
  }
  if (process.env.TEST_FAILURES !== undefined)
    writeFileSync(process.env.TEST_FAILURES, JSON.stringify(failed))
}

const causeOf = (error: Error): unknown => (error as { failureType?: unknown }).failureType
