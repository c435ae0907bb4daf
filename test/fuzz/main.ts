import { parseArgs } from 'node:util'

/**
 * `npm run fuzz [-- --requests N --seed S --only TEXT]`: requests of every operation, good and broken, against processes
 * of the service; `--only` those whose method and path hold a text. It is the test of that name, with these numbers.
 */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string' },
    only: { type: 'string', default: '' },
  },
})
process.env.FUZZ_REQUESTS = values.requests
process.env.FUZZ_ONLY = values.only
if (values.seed !== undefined) process.env.TEST_SEED = values.seed
process.argv.splice(2, process.argv.length, '--depth', 'long', 'test/long/fuzz.test.ts')
await import('../run.ts')
