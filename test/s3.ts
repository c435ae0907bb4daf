import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import S3rver from '@20minutes/s3rver'

/** An S3 server that checks signatures and stores objects in files, which a test can inspect and delete. */
export interface S3Server {
  /** Settings for an edge or worker that uses this store. */
  readonly env: Readonly<Record<string, string>>
  /** Returns the files of complete objects and of uploaded parts. */
  files(): readonly string[]
  /** Requests so far, in order, such as `PUT /bucket/key`. */
  readonly requests: string[]
  /** True if the server answers every request with 500. */
  failing: boolean
  stop(): Promise<void>
}

export const BUCKET = 'test-bytes'
const OBJECT = /\._S3rver_object$|\._S3rver_uploads\/[^/]+\/\d+$/

export async function startS3(prefix = ''): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-s3-'))
  const buckets = [{ name: BUCKET }]
  const options = { address: '127.0.0.1', port: 0, silent: true, directory, vhostBuckets: false }
  const server = new S3rver({ ...options, configureBuckets: buckets })
  const requests: string[] = []
  let failing = false
  server.middleware.unshift(async (context, next) => {
    requests.push(`${context.method} ${context.path}`)
    if (failing) context.status = 500
    else if (context.method === 'DELETE' && context.query.uploadId !== undefined)
      context.status = abortUpload(directory, context.query.uploadId)
    else await next()
  })
  const { port } = await server.run()
  return {
    env: {
      BLOB_STORE: `s3://${BUCKET}${prefix}`,
      S3_ENDPOINT_URL: `http://127.0.0.1:${port}`,
      S3_ACCESS_KEY: 'S3RVER',
      S3_SECRET_KEY: 'S3RVER',
    },
    files: () =>
      readdirSync(directory, { recursive: true, encoding: 'utf8' })
        .filter((file) => OBJECT.test(file))
        .map((file) => join(directory, file)),
    requests,
    get failing() {
      return failing
    },
    set failing(value) {
      failing = value
    },
    stop: async () => {
      server.httpServer.closeAllConnections()
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Implements AbortMultipartUpload, which the package lacks. Returns the HTTP status that S3 would send. */
function abortUpload(directory: string, uploadId: string): number {
  const folder = join(directory, BUCKET, '._S3rver_uploads', basename(uploadId))
  if (!existsSync(folder)) return 404
  rmSync(folder, { recursive: true })
  return 204
}
