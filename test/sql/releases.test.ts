import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  computeDigests,
  listReleasedVersions,
  needsSnapshot,
  RELEASES_FOLDER,
  readVersion,
} from '../releases.ts'

/** Each release leaves a snapshot of its data, and later versions are tested with it. */

const version = readVersion(new URL('../../package.json', import.meta.url))

test('each version from 1.0.0 on has a snapshot', () => {
  const hint = `${version} has no snapshot in test/data/releases: run \`npm run snapshot\``
  assert.ok(!needsSnapshot(version) || listReleasedVersions().includes(version), hint)
})

test('versions before 1.0.0 need none', () => {
  const needing = ['0.1.0', '0.99.9', '1.0.0-rc.1', '1.0.0', '1.0.1', '2.0.0', '10.1.0'].filter(needsSnapshot)
  assert.deepEqual(needing, ['1.0.0-rc.1', '1.0.0', '1.0.1', '2.0.0', '10.1.0'])
})

test('the baseline and released migrations do not change', async () => {
  const present = await computeDigests()
  for (const name of listReleasedVersions()) {
    const then = JSON.parse(readFileSync(new URL(`${name}.json`, RELEASES_FOLDER), 'utf8')) as Record<
      string,
      string
    >
    for (const [migration, digest] of Object.entries(then))
      assert.equal(
        present[migration],
        digest,
        `${name} was released with another ${migration}: add a migration instead`,
      )
  }
})
