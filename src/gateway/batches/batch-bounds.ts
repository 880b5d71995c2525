/** The bounds of batches and of their files. Each of them has an error that names it. */

const mib = 1024 * 1024
const hourMs = 3600_000

/** The most bytes of one request of a batch. While a line is checked, all other callers wait. */
export const lineMaxBytes = 1 * mib
/** The most characters of a custom id. */
export const customIdMaxChars = 256
/** The most files of an organisation, and the most bytes that they have together. The files of all providers count. */
export const filesMax = 1000
export const filesMaxBytes = 10 * 1024 * mib
/** The most batches of an organisation that are not ended. */
export const openBatchesMax = 100
/** The most uploads of an organisation that one process takes concurrently. */
export const uploadsMax = 4
/** The most uploads of the organisations of one founder, and of all, that one process takes concurrently. */
export const uploadsOfFounderMax = 8
export const uploadsOfProcessMax = 32
/** The most days for which a file stays at the provider. The data-retention window of the organisation may be shorter. */
export const fileDaysMax = 30
/** The expired files of one organisation, and of all, that one look of the sweep takes, and the looks of one sweep. */
export const sweptOfOrg = 50
export const sweptMost = 500
export const sweepLooksMost = 100
/** How many files a sweep deletes concurrently, and how long it waits for each. */
export const sweepPlaces = 8
export const sweepAskMs = 10_000
/** The shortest wait after a failed deletion. The waits grow with the age of the failure. */
export const deletionRetryMs = hourMs
/** The days after which a file is forgotten that its provider does not delete. */
export const forgottenDays = 7
/** The days for which an ended batch is listed. */
export const keptDays = 30
/** How long the provider may work on a batch. */
export const windowMs = 24 * hourMs
/** How long after that the provider may still work on it. It is then asked to cancel. A batch that it does not know then ends. */
export const graceMs = 2 * hourMs
/** How long after its time a batch is waited for whose provider or results cannot be reached. */
export const lostMs = 7 * 24 * hourMs
/** How long a batch may lack the id of the provider before it counts as refused, where the provider can be asked. */
export const unknownMs = 10 * 60_000
/** The waits between two looks at a provider grow by this factor, up to ten times the first one. */
export const pollGrowth = 1.5
export const pollMostTimes = 10
/** The most batches that one process works on concurrently, and those of one organisation over all processes. */
export const pollPlaces = 4
export const orgPlaces = 2
/** The most batches beside those that one process asks to cancel concurrently, and those of one organisation with its other ones. */
export const cancelPlaces = 8
export const orgCancelPlaces = 6
/** The longest claim of a batch. A process renews it while it works. */
export const claimMs = 60_000
/** The longest wait for one reply about a batch. */
export const askTimeoutMs = 60_000
/** The longest reply about a batch or a file, without the contents of files. */
export const answerMaxBytes = 256 * 1024
/** The longest line of results that is parsed, without its numbers and long texts. */
export const resultLineMaxBytes = 2 * mib
