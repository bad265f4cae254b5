# SPDX-License-Identifier: GPL-2.0
# Part C into what the compiler sees and what it does not: with -v want=code the lines
# without comments and the text of strings, with -v want=comments the comments alone.
# Each line begins with its file's name, its number and a tab.
FNR == 1 { inside = 0 }
{
	rest = $0
	code = comment = ""
	while (rest != "") {
		if (inside) {
			i = index(rest, "*/")
			if (!i) {
				comment = comment " " rest
				break
			}
			comment = comment " " substr(rest, 1, i - 1)
			rest = substr(rest, i + 2)
			inside = 0
		} else if (match(rest, /\/\*|\/\/|"([^"\\]|\\.)*"/)) {
			token = substr(rest, RSTART, 2)
			code = code substr(rest, 1, RSTART - 1)
			if (token == "//") {
				comment = comment " " substr(rest, RSTART + 2)
				break
			}
			if (token == "/*") {
				inside = 1
				rest = substr(rest, RSTART + 2)
			} else {
				code = code "\"\""
				rest = substr(rest, RSTART + RLENGTH)
			}
		} else {
			code = code rest
			break
		}
	}
	text = want == "code" ? code : comment
	if (text != "")
		print FILENAME ":" FNR "\t" text
}
