import { Readable } from 'node:stream'
import type { TestEvent } from 'node:test/reporters'
import { spec } from 'node:test/reporters'

/**
 * `spec`, and an exit code that every failure sets: by itself Node 22 exits with 0 when nothing failed but a suite without its
 * tests, such as a file that ends while it is loaded, or whose `after` throws (nodejs/node#58687).
 */
export default (events: AsyncIterable<TestEvent>): AsyncIterable<Buffer> =>
  Readable.from(failing(events)).compose(spec())

async function* failing(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    if (event.type === 'test:fail') process.exitCode = 1
    yield event
  }
}
