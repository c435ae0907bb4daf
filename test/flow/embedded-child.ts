import { startEmbedded } from '../../sql/embedded.ts'

/**
 * A process that owns an embedded database in the folder of its first argument: says the URL, or why there is
 * none, in one line of JSON, and stops when its input ends.
 */
const lines: string[] = []
const dataDir = process.argv[2] ?? ''
try {
  const settings = { synchronous_commit: 'on' } // Its commits are to outlive a SIGKILL.
  const database = await startEmbedded({
    dataDir,
    ephemeral: true,
    settings,
    log: (line) => lines.push(line),
  })
  console.log(JSON.stringify({ url: database.url, lines }))
  process.stdin.resume().once('end', () => {
    void database.stop()
  })
} catch (error) {
  console.log(JSON.stringify({ error: (error as Error).message, lines }))
}
