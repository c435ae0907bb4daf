import { writeFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { spec } from 'node:test/reporters'

/** A failed test and its test file. */
export interface FailedTest {
  /** Name of the top-level suite: a test file, or a process of node:test that died. */
  readonly file: string
  readonly name: string
}

/**
 * The `spec` reporter, with exit code 1 after any failure. By default, Node 22 exits with 0 if a suite fails but none
 * of its tests does (nodejs/node#58687). For example, a file may throw in `after` or exit while it loads. The reporter
 * also writes all failures, as `FailedTest[]`, to the file that `TEST_FAILURES` names.
 */
export default (events: AsyncIterable<TestEvent>): AsyncIterable<Buffer> =>
  Readable.from(collectFailures(events)).compose(spec())

async function* collectFailures(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const failed: FailedTest[] = []
  let names: string[] = []
  for await (const event of events) {
    if (event.type === 'test:fail') {
      process.exitCode = 1
      const { name, nesting, details } = event.data
      // A suite's event follows those of its tests. The file's own suite comes last.
      if (failureTypeOf(details.error) !== 'subtestsFailed') names.push(name)
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

const failureTypeOf = (error: Error): unknown => (error as { failureType?: unknown }).failureType
