import { isUtf8 } from "node:buffer";
// src/memory/search/search-pieces.ts
/** Divides the bytes of an object into lines and pieces of lines. It decodes only what it returns. Decision 0652 says why. */
const firstPlace = {
	line: 0,
	start: 0,
	offset: 0
};
/** Maximum number of bytes of UTF-8 for one UTF-16 code unit. */
const unitBytesMax = 3;
/** The check of this many bytes takes a millisecond or two. */
const checkedBytes = 1048576;
/** The beginning of an object that must not contain a zero byte, because text contains none. */
const probedBytes = 8192;
const [lineFeed, carriageReturn] = [10, 13];
/** Checks whether an object is text in UTF-8, one slice with each step. Returns the result at the end. */
function* checkText(bytes) {
	if (bytes.subarray(0, probedBytes).includes(0)) return false;
	for (let at = 0; at < bytes.length;) {
		const end = characterStart(bytes, Math.min(bytes.length, at + checkedBytes));
		if (end <= at || !isUtf8(bytes.subarray(at, end))) return false;
		at = end;
		yield;
	}
	return true;
}
/** Returns the place of the character to which a byte belongs. Returns the place itself behind the end, and for bytes that are not UTF-8. */
function characterStart(bytes, at) {
	for (let back = 0; back <= unitBytesMax; back++) {
		const byte = bytes[at - back];
		if (byte === void 0 || (byte & 192) !== 128) return at - back;
	}
	return at;
}
/** Returns the pieces of an object after `from`. A piece has at most `pieceChars` characters. */
function* piecesOf(bytes, pieceChars, from) {
	const stepChars = Math.ceil(pieceChars * .875);
	let { line, offset } = from;
	for (let start = from.start === 0 ? markLength(bytes) : from.start; start < bytes.length;) {
		const found = bytes.indexOf(lineFeed, start);
		const next = found < 0 ? bytes.length : found;
		const end = next > start && bytes[next - 1] === carriageReturn ? next - 1 : next;
		line++;
		do {
			const { text, isAll } = beginningOf(bytes, start + offset, end, pieceChars);
			const step = isAll ? 0 : Buffer.byteLength(withoutHalf(text.slice(0, stepChars)));
			yield {
				line,
				text,
				isLineEnd: isAll,
				start,
				nextStart: next + 1,
				nextOffset: offset + step
			};
			offset = isAll ? end - start : offset + step;
		} while (start + offset < end);
		offset = 0;
		start = next + 1;
	}
}
/** Returns at most `chars` characters of the bytes from `at` to `end`, and whether these are all. */
function beginningOf(bytes, at, end, chars) {
	const enough = Math.min(end, at + (chars + 1) * unitBytesMax);
	const text = at < end ? bytes.toString("utf8", at, enough) : "";
	return {
		text: text.slice(0, chars),
		isAll: enough >= end && text.length <= chars
	};
}
/** Returns a text without the first half of a character at its end. */
const withoutHalf = (text) => text.length > 1 && /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
/** Returns the number of bytes of the byte order mark at the beginning. It belongs to no line. */
const markLength = (bytes) => bytes[0] === 239 && bytes[1] === 187 && bytes[2] === 191 ? 3 : 0;
// ../../tmp/ft/sp.ts
const b = Buffer.from("﻿a\r\n\nb\r");
console.log([...piecesOf(b, 512, firstPlace)]);
for (const l of [
	"x",
	"é",
	"漢",
	"😀",
	"x😀",
	"漢x😀é"
]) {
	const line = l.repeat(2e3);
	const all = [...piecesOf(Buffer.from(`first\n${line}\nlast`), 512, firstPlace)];
	let at = 0;
	for (const p of all.filter((p) => p.line === 2)) {
		if (p.text !== line.slice(at, at + 512)) console.log("bad", l, at);
		at = Buffer.from(line).subarray(0, p.nextOffset).toString().length;
	}
	console.log(l, all.length, all.at(-1));
}
const big = Buffer.from("x\n" + "漢".repeat(3495252));
let s = performance.now();
const c = checkText(big);
let n = 0;
let r;
while (!(r = c.next()).done) n++;
console.log(n, r.value, performance.now() - s);
s = performance.now();
const it = piecesOf(big, 4096, firstPlace);
it.next();
it.next();
console.log(performance.now() - s);
s = performance.now();
let k = 0;
for (const p of piecesOf(Buffer.from("hello world this is a line of sixty characters, more or less\n".repeat(17e4)), 4096, firstPlace)) k++;
console.log(k, performance.now() - s);
export {};
