import { startS3 } from '../../s3.ts'

/** An object store in a separate process, so that its memory does not count as the edge's. */

const server = await startS3()
process.on('SIGTERM', () => void server.stop().finally(() => process.exit(0)))
process.send?.({ ready: true, env: server.env })
