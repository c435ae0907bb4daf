/** Types for the parts of the S3 server that tests use; the package has no types. */
declare module '@20minutes/s3rver' {
  interface Context {
    readonly method: string
    readonly path: string
    readonly query: Readonly<Record<string, string | undefined>>
    status: number
  }
  type Middleware = (context: Context, next: () => Promise<unknown>) => unknown

  export default class S3rver {
    constructor(options: {
      readonly address: string
      readonly port: number
      readonly silent: boolean
      readonly directory: string
      readonly vhostBuckets: boolean
      readonly configureBuckets: readonly { readonly name: string }[]
    })
    readonly middleware: Middleware[]
    run(): Promise<{ readonly port: number }>
    close(): Promise<void>
    readonly httpServer: { closeAllConnections(): void }
  }
}
