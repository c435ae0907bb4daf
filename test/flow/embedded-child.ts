import { startEmbedded } from '../../sql/embedded.ts'

/**
 * Owns an embedded database in the folder of the first argument. Prints one line of JSON, the URL or an error, and
 * stops when stdin ends.
 */
const lines: string[] = []
const dataDir = process.argv[2] ?? ''
try {
  const settings = { synchronous_commit: 'on' } // Its commits must survive a SIGKILL.
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
