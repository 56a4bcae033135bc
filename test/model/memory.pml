/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.pml - shared memory as weak as C11 permits, of two or more processes
 *
 * The including model defines before:
 *   PROCS    number of processes, if not two
 *   ATOMS    number of atomic locations, 0 .. ATOMS-1. Each has one writer, or
 *            is changed by cas() only, or is sequentially consistent
 *   PLAIN    number of plain locations (payload, receive space), 0 .. PLAIN-1,
 *            each with one writer and one reader
 *   WINDOW   how many values of a location a reader may be behind, plus one
 *
 * An atomic location keeps its old values. A load returns any value that is not
 * older than the loading process knows. The stores of a process are therefore
 * seen by another process in any order, late or never, until an acquire load
 * reads a release store: then the reader knows all that the writer knew.
 *
 * A process may read plain memory if it knows the last write, and may write
 * plain memory if it knows the last write and the last read. Any other access
 * is a data race, which C11 leaves undefined: claim no_race. (This detects a
 * load that is delayed past a later store; old values alone would not.)
 */
#ifndef PROCS
#define PROCS		2
#endif
#define THINGS		(ATOMS + 2 * PLAIN)
#define WRITES(x)	(ATOMS + 2 * (x))
#define READS(x)	(ATOMS + 2 * (x) + 1)

#define RELAXED		0
#define RELEASE		1
#define ACQUIRE		1

typedef view {
	byte to[THINGS]			/* accesses known of */
};
typedef history {
	byte val[WINDOW];		/* the oldest still to be read first */
	view with[WINDOW]		/* what the release store carried */
};

history atom[ATOMS];
byte last[THINGS];			/* accesses there were */
view know[PROCS];			/* by process */
byte sync[ATOMS];			/* last store in the one order */
bool no_race = true;
bool window_enough = true;		/* of the model, not of the code */
byte pick;				/* scratch, 0 between steps */
hidden byte it, on, ix, old;		/* within a step */

/* A property by its name: the name is what pan prints when it fails. */
inline claim(what, cond)
{
	what = (cond);
	assert(what)
}

/* The value a process read last; is there a later one? */
#define SEEN(p, a)	atom[a].val[know[p].to[a]]
#define NEWER(p, a)	(last[a] > know[p].to[a])

/*
 * What all processes know is forgotten, and the rest counted from there: the
 * same situation is the same state, however long the way to it was.
 */
inline forget()
{
	for (it : 0 .. THINGS - 1) {
		old = know[0].to[it];
		for (on : 1 .. PROCS - 1) {
			old = (know[on].to[it] < old -> know[on].to[it] : old)
		};
		if
		:: old != 0 ->
			last[it] = last[it] - old;
			for (on : 0 .. PROCS - 1) {
				know[on].to[it] = know[on].to[it] - old
			};
			forget_atom()
		:: else
		fi
	};
	it = 0				/* a d_step may not end in a loop */
}

inline forget_atom()
{
	for (on : 0 .. ATOMS - 1) {
		for (ix : 0 .. WINDOW - 1) {
			atom[on].with[ix].to[it] =
				(atom[on].with[ix].to[it] > old ->
				 atom[on].with[ix].to[it] - old : 0)
		}
	};
	if
	:: it < ATOMS ->
		sync[it] = (sync[it] > old -> sync[it] - old : 0);
		for (ix : 0 .. WINDOW - 1) {
			if
			:: ix + old < WINDOW ->
				atom[it].val[ix] = atom[it].val[ix + old];
				view_copy(atom[it].with[ix],
					  atom[it].with[ix + old])
			:: else ->
				atom[it].val[ix] = 0;
				view_zero(atom[it].with[ix])
			fi
		}
	:: else
	fi
}

inline view_copy(to_view, from)
{
	for (on : 0 .. THINGS - 1) {
		to_view.to[on] = from.to[on]
	}
}

inline view_zero(v)
{
	for (on : 0 .. THINGS - 1) {
		v.to[on] = 0
	}
}

inline store(p, a, value, order)
{
	d_step {
		claim(window_enough, last[a] + 1 < WINDOW);
		last[a]++;
		know[p].to[a] = last[a];
		atom[a].val[last[a]] = value;
		if
		:: order ->
			view_copy(atom[a].with[last[a]], know[p])
		:: else
		fi;
		it = 0
	}
}

/* Read the value of index pick. */
inline take_value(p, a, value, order)
{
	know[p].to[a] = pick;
	value = SEEN(p, a);
	for (it : 0 .. THINGS - 1) {
		if
		:: order && know[p].to[it] < atom[a].with[pick].to[it] ->
			know[p].to[it] = atom[a].with[pick].to[it]
		:: else
		fi
	};
	pick = 0;
	forget()
}

inline load(p, a, value, order)
{
	atomic {
		select (pick : know[p].to[a] .. last[a]);
		skip;
		d_step {
			take_value(p, a, value, order)
		}
	}
}

/*
 * The same, sequentially consistent: a load gives nothing older than the last
 * such store of that location, whoever knows of it.
 */
inline store_sync(p, a, value)
{
	atomic {
		store(p, a, value, RELEASE);
		sync[a] = last[a]
	}
}

inline load_sync(p, a, value)
{
	atomic {
		if
		:: know[p].to[a] < sync[a] ->
			know[p].to[a] = sync[a]
		:: else
		fi;
		load(p, a, value, ACQUIRE)
	}
}

/* The same of one with no other stores. */
inline load_last(p, a, value)
{
	d_step {
		pick = last[a];
		take_value(p, a, value, ACQUIRE)
	}
}

/*
 * Compare and swap: done says whether, what has the value that was there. Only
 * the latest value can be swapped; who fails may have read an older one. sync:
 * it is in the one order.
 */
inline cas(p, a, what, value, done, load_order, order, in_sync)
{
	atomic {
		select (pick : know[p].to[a] .. last[a]);
		pick = (atom[a].val[pick] == what -> last[a] : pick);
		done = (atom[a].val[pick] == what);
		take_value(p, a, what, load_order);
		if
		:: done ->
			cas_store(p, a, value, order);
			sync[a] = (in_sync -> last[a] : sync[a])
		:: else
		fi
	}
}

/* What the value before carried goes on with this one, released or not. */
inline cas_store(p, a, value, order)
{
	d_step {
		claim(window_enough, last[a] + 1 < WINDOW);
		last[a]++;
		know[p].to[a] = last[a];
		atom[a].val[last[a]] = value;
		view_copy(atom[a].with[last[a]], atom[a].with[last[a] - 1]);
		for (it : 0 .. THINGS - 1) {
			if
			:: order &&
			   atom[a].with[last[a]].to[it] < know[p].to[it] ->
				atom[a].with[last[a]].to[it] = know[p].to[it]
			:: else
			fi
		};
		it = 0
	}
}

/* Poll until a later value is seen; its load again tells which, and orders. */
inline await(p, a)
{
	atomic {
		NEWER(p, a);
		select (pick : know[p].to[a] + 1 .. last[a]);
		skip;
		d_step {
			know[p].to[a] = pick;
			pick = 0;
			forget()
		}
	}
}

inline plain_write(p, x)
{
	d_step {
		claim(no_race, know[p].to[WRITES(x)] == last[WRITES(x)] &&
		      know[p].to[READS(x)] == last[READS(x)]);
		last[WRITES(x)]++;
		know[p].to[WRITES(x)] = last[WRITES(x)]
	}
}

inline plain_read(p, x)
{
	d_step {
		claim(no_race, know[p].to[WRITES(x)] == last[WRITES(x)]);
		last[READS(x)]++;
		know[p].to[READS(x)] = last[READS(x)]
	}
}

/* A process learns of another's end from the kernel: it knows all it did. */
inline learn_all(p)
{
	d_step {
		for (it : 0 .. THINGS - 1) {
			know[p].to[it] = last[it]
		};
		forget()
	}
}

/*
 * membarrier(): a full barrier on every processor where one of the two runs.
 * What either did before it is known to both after it.
 */
inline membarrier()
{
	d_step {
		for (it : 0 .. THINGS - 1) {
			for (on : 0 .. PROCS - 1) {
				know[on].to[it] = last[it]
			}
		};
		forget()
	}
}
