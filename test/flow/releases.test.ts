import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { dumpSchema } from '../../sql/server/dump.ts'
import { createEmptyDatabase, createTestDatabase } from '../database.ts'
import { startEdge } from '../edge/harness.ts'
import { listReleasedVersions, makeSnapshot, RELEASES_FOLDER } from '../releases.ts'
import { startProcess } from '../service.ts'
import { withClient } from '../sql/ledger-help.ts'
import { assertUpgradeData } from '../upgrade-data.ts'
import {
  CURRENT_VERSION,
  createContractedVersion,
  createExpandedVersion,
  runRelease,
  runRestore,
  type Version,
} from '../versions.ts'

/** Upgrades the database of each release, with data and waiting jobs, to the current version, and uses it. */

for (const number of listReleasedVersions())
  test(`upgrades the database of ${number} to this version`, () =>
    assertUpgraded(fileURLToPath(new URL(`${number}.backup`, RELEASES_FOLDER)), CURRENT_VERSION))

test('upgrades the database of this version to the one after the next', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-snapshot-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const { url } = await createTestDatabase()
  const { port } = await startEdge(url)
  const file = join(folder, 'present.backup')
  await makeSnapshot(url, port, file)
  await assertUpgraded(file, createContractedVersion(createExpandedVersion()))
})

/**
 * Restores a snapshot with the given version, which creates the tables, fills them and migrates them. Then uses the
 * database.
 */
async function assertUpgraded(file: string, version: Version): Promise<void> {
  const url = await createEmptyDatabase()
  const restoring = runRestore(version, url, file)
  assert.equal(await restoring.ended, 0, restoring.log.join('\n'))
  const releasing = runRelease(version, url)
  assert.equal(await releasing.ended, 0)
  assert.deepEqual(releasing.log, ['Nothing to migrate'])
  const { rows } = await withClient(url, (client) =>
    client.query<{ name: string }>(
      "select name from job where status = 'available' except select task_identifier from graphile_worker.jobs",
    ),
  )
  assert.deepEqual(rows, [], 'a delivery tells workers of each task that has jobs')
  const [edge] = await Promise.all(
    (['edge', 'worker'] as const).map((kind) =>
      startProcess(kind, url, { WORKER_THREADS: '1' }, [], [], version.root),
    ),
  )
  await assertUpgradeData(edge!.ready.port!)

  const fresh = await createEmptyDatabase()
  assert.equal(await runRelease(version, fresh).ended, 0)
  assert.deepEqual((await dumpSchema(url)).split('\n'), (await dumpSchema(fresh)).split('\n'))
}
