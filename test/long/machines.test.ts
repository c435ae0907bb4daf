import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { findMissing } from '../flow/programs.ts'
import { createMachine, type Ended, type Machine, type MachineOptions } from '../machines.ts'
import { IS_LONG } from '../runs.ts'

/** Follows the README on fresh machines, as a stranger would. There is no network after `npm ci`. */

const MACHINES: readonly MachineOptions[] = [
  { debian: 'bookworm', node: 20, user: 'ann', folder: '/home/ann/my mill' },
  { debian: 'bookworm', node: 24, user: 'root', folder: '/opt/millrace' },
  { debian: 'trixie', node: 22, user: 'root', folder: '/srv/a mill' },
  { debian: 'trixie', node: 24, user: 'ann', folder: '/home/ann/millrace' },
]

function findReason(): string | false {
  if (!IS_LONG) return 'runs only in `npm run test:long`'
  if (process.getuid?.() !== 0) return 'needs root'
  return findMissing('debootstrap', 'unshare', 'git', 'ip')
}

const START = `npm start >/tmp/start.log 2>&1 & service=$!
for i in $(seq 120); do curl -sf http://127.0.0.1:8000/ready && break; sleep 1; done
curl -sf http://127.0.0.1:8000/health && kill $service && wait $service; code=$?; cat /tmp/start.log; exit $code`

const assertEnded = ({ code, output }: Ended): void => assert.equal(code, 0, output.slice(-20_000))

describe('fresh machines', { skip: findReason() }, () => {
  for (const options of MACHINES)
    describe(`Debian ${options.debian}, Node ${options.node}, ${options.user} in ${options.folder}`, () => {
      let machine: Machine
      before(() => {
        machine = createMachine(options)
      })
      after(() => machine.remove())

      test('npm ci prints no warning', async () => {
        const ended = await machine.run('npm ci', { hasNetwork: true, minutes: 20 })
        assertEnded(ended)
        assert.doesNotMatch(ended.output, /\bwarn\b/i)
      })

      test('npm start serves, and stops when asked', async () => {
        const ended = await machine.run(START, { hasNetwork: false, minutes: 5 })
        assertEnded(ended)
      })

      test('the five minutes and the examples of all guides run as printed', async () => {
        assertEnded(
          await machine.run('npm test -- test/flow/readme.test.ts', { hasNetwork: false, minutes: 20 }),
        )
      })

      test('npm test passes', async () => {
        assertEnded(await machine.run('npm test', { hasNetwork: false, minutes: 60 }))
      })
    })
})
