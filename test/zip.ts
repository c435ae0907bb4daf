import { ZipFile } from 'yazl'

/** A zip archive of files. */
export async function zipOf(
  files: readonly (readonly [path: string, text: string | Uint8Array])[],
): Promise<Buffer> {
  const zip = new ZipFile()
  for (const [path, text] of files) zip.addBuffer(Buffer.from(text), path)
  zip.end()
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
