import type { TaskContext } from '../context.ts'
import { synthesize } from './synthesis.ts'

/** Runs `voice.preview`. */
export async function run(
  ctx: TaskContext,
  { digest }: { readonly digest: string },
): Promise<{ byte_size: number }> {
  return { byte_size: await synthesize(ctx, Buffer.from(digest, 'hex')) }
}
