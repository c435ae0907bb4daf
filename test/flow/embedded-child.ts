import { startEmbedded } from '../../sql/server/embedded/embedded.ts'

/**
 * Runs an embedded database in the folder of the first argument and stops when stdin ends. Prints one line of JSON with
 * the URL or an error.
 */
const lines: string[] = []
const dataDir = process.argv[2] ?? ''
try {
  const settings = { synchronous_commit: 'on' } // Commits must survive a SIGKILL.
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
