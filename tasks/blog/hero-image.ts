import { UnreadablePostError } from './front-matter.ts'
import { exceedsLength, LIMITS } from './limits.ts'
import { IMAGE_ADDRESS_RULE, isSafeImageAddress } from './public.ts'
import { collectTexts, type FrontMatterKeys, toText } from './values.ts'

const IMAGE_KEYS =
  `image cover coverimage coverurl featureimage featuredimage featuredimg heroimage hero banner bannerimage headerimage
  header.teaser header.image header.overlayimage images img imageurl ogimage socialimage opengraph.image seo.image thumbnail
  thumbnailimage thumb teaser poster photo preview previewimage postimage extra.image extra.cover extra.coverimage`.split(
    /\s+/,
  )
const ADDRESS_KEYS = ['image', 'url', 'src', 'path', 'feature', 'teaser', 'thumbnail', 'href', 'relative']

/**
 * Returns the address of a post's hero image; null if there is none. Strict sources name it under one key, and a bad one
 * is an error. From others, the first usable one is taken: an import has no pictures, so relative paths lead nowhere.
 *
 * @throws UnreadablePostError if the address of a strict source is invalid.
 */
export function parseHeroImage(keys: FrontMatterKeys, isStrict: boolean): string | null {
  const value = keys.get('heroimageurl')
  const own = typeof value === 'string' ? value : toText(value)
  if (isStrict && own) return assertImageAddress(own)
  const found = [own ?? '', ...IMAGE_KEYS.flatMap((name) => collectTexts(keys.get(name), ...ADDRESS_KEYS))]
  return (
    found.find((address) => isSafeImageAddress(address) && !exceedsLength(address, LIMITS.hero_image_url)) ??
    null
  )
}

function assertImageAddress(address: string): string {
  if (exceedsLength(address, LIMITS.hero_image_url))
    throw new UnreadablePostError(`hero_image_url: must have at most ${LIMITS.hero_image_url} characters`)
  if (!isSafeImageAddress(address)) throw new UnreadablePostError(`hero_image_url: ${IMAGE_ADDRESS_RULE}`)
  return address
}
