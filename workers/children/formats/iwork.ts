import { Unreadable } from '../images/images.ts'
import { Archive } from './archive.ts'

/** Finds the preview in documents of Pages, Numbers and Keynote, whose own format is not documented. */

const PREVIEW = 'quicklook/preview.pdf'

/** Returns the pages as PDF, which versions up to 2009 store. @throws Unreadable if there is none. */
export async function readPreview(bytes: Uint8Array): Promise<Uint8Array> {
  const preview = await (await Archive.open(bytes)).bytes(PREVIEW)
  if (preview === null)
    throw new Unreadable(
      'Documents of Pages, Numbers and Keynote can be read only if they hold a preview as PDF; export this one as PDF',
    )
  return new Uint8Array(preview)
}
